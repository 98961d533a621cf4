from .demo import demo as demo
