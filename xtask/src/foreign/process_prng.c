// bcryptprimitives.dll, which wine before 9.0 does not have. Every program of Rust needs this function.
__declspec(dllimport) unsigned char SystemFunction036(void *data, unsigned long size);

__declspec(dllexport) int ProcessPrng(unsigned char *data, unsigned long long size) {
    return SystemFunction036(data, (unsigned long)size);
}
