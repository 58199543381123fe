package holdfast.bench;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import org.redisson.api.RLock;

/** One thread for each caller of this process, in a closed loop: acquire, hold, release, think. */
final class Callers {
  /** After an error a caller pauses, ms: a client that fails at once must not turn the loop into a spin. */
  private static final long AFTER_ERROR = 20;
  private static final int MESSAGES = 5;

  final LongAdder acquired = new LongAdder();
  final LongAdder timeouts = new LongAdder();
  final LongAdder errors = new LongAdder();
  final Set<String> messages = new LinkedHashSet<>();
  final List<Samples> samples = new ArrayList<>();
  private final List<Thread> threads = new ArrayList<>();
  private final Job.Load load;
  private final Function<String, RLock> locks;
  private final double until;

  Callers(Job job, Function<String, RLock> locks, Job.Word word) {
    this.load = word.load();
    this.locks = locks;
    this.until = word.until();
    for (int caller = 0; caller < load.tasks(); caller++) {
      SplittableRandom random = new SplittableRandom(job.seed() + 1_000L * job.worker() + caller);
      Samples own = new Samples();
      samples.add(own);
      threads.add(new Thread(() -> loop(random, own), "caller-" + caller));
    }
    threads.forEach(Thread::start);
  }

  /** False: they still run after this time. */
  boolean join(long ms) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
    for (Thread thread : threads) {
      thread.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())));
      if (thread.isAlive()) return false;
    }
    return true;
  }

  private void loop(SplittableRandom random, Samples own) {
    int times = load.times() == null ? Integer.MAX_VALUE : load.times();
    try {
      for (int i = 0; i < times && now() < until; i++) {
        int name = random.nextInt(load.names().length);
        Long lease = load.leases()[random.nextInt(load.leases().length)];
        // Redisson's watchdog holds for as long as the work takes when the lease is -1.
        boolean held = once(name, lease == null ? -1 : lease, own);
        if (held && load.think() > 0) Thread.sleep(random.nextLong(load.think() + 1));
      }
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  private boolean once(int name, long lease, Samples own) throws InterruptedException {
    double asked = now();
    RLock lock = locks.apply(load.names()[name]);
    try {
      if (!lock.tryLock(load.patience(), lease, TimeUnit.MILLISECONDS)) {
        timeouts.increment();
        return false;
      }
    } catch (RuntimeException error) {
      note(error);
      Thread.sleep(AFTER_ERROR);
      return false;
    }
    double got = now();
    acquired.increment();
    if (load.hold() > 0) Thread.sleep(load.hold());
    double left = now();
    try {
      lock.unlock();
    } catch (RuntimeException error) {
      note(error);
    }
    own.add(name, asked, got, left);
    return true;
  }

  private synchronized void note(RuntimeException error) {
    errors.increment();
    if (messages.size() < MESSAGES) messages.add(String.valueOf(error));
  }

  private static double now() {
    return System.nanoTime() / 1000.0;
  }
}
