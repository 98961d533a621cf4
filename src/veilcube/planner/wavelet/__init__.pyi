from .strategy import Wavelet as Wavelet
