/** Calls OpenMP code through JNI, from several threads, while memory is collected. */
public class Guest {
    static native long sum(int n);

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        long[] sums = new long[3];
        Thread[] threads = new Thread[sums.length];
        for (int i = 0; i < threads.length; i++) {
            int own = i;
            threads[i] = new Thread(() -> {
                for (int round = 0; round < 20; round++) {
                    sums[own] += sum(20000) + new byte[100000].length;
                }
            });
            threads[i].start();
        }
        long all = 0;
        for (int i = 0; i < threads.length; i++) {
            threads[i].join();
            all += sums[i];
        }
        System.out.println(all);
        System.exit(19);
    }
}
