/** Two threads that compute within one monitor, and leave work for the garbage collector. */
public class Program {
    static final Object monitor = new Object();
    static volatile byte[] garbage;

    static long work(long n) {
        long sum = 0;
        for (long i = 0; i < n; i++) sum = (sum + i * i) % 1000003;
        return sum;
    }

    static void run() {
        for (int call = 0; call < 3000; call++) {
            synchronized (monitor) {
                if (work(100000) < 0) System.exit(1);
                garbage = new byte[1 << 20];
            }
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(Program::run, "one"), two = new Thread(Program::run, "two");
        one.start();
        two.start();
        one.join();
        two.join();
        System.gc();
        System.out.println("6000 calls");
    }
}
