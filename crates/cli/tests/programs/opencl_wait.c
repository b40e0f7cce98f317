/* One thread gives a device two kernels at a time, works while they run, and waits for both. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>

static const char *source =
    "kernel void spin(global float *x, int n) {\n"
    "  int i = get_global_id(0); float v = x[i];\n"
    "  for (int k = 0; k < n; k++) v = v * 1.000001f + 0.5f;\n"
    "  x[i] = v;\n"
    "}\n";

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int status;
    if (clGetPlatformIDs(1, &platform, NULL) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 1;
    int workers = 0;
    #pragma omp parallel num_threads(2) reduction(+ : workers)
    workers++;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    clBuildProgram(program, 1, &device, "", NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, "spin", &status);
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096 * sizeof(float), NULL, &status);
    size_t items = 4096;
    int length = 4000;
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    clSetKernelArg(kernel, 1, sizeof length, &length);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 2; i++)
            if (clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL))
                return 1;
        clFlush(queue);
        volatile double sum = 0;
        for (int i = 0; i < 200000; i++)
            sum += i;
        clFinish(queue);
    }
    printf("%d workers\n", workers);
    return 0;
}
