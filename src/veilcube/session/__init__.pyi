from .protecting import protect as protect
from .releasing import release as release
