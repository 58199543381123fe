package holdfast.interop;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** Threads that take one lock again and again, and let the witness in Redis see each visit. */
final class Hammer {
  private static final String WITNESS = read("/witness.lua");
  private final RedissonClient client;
  private final RLock lock;
  private final String witness;
  private final String side;

  Hammer(RedissonClient client, RLock lock, String witness, String side) {
    this.client = client;
    this.lock = lock;
    this.witness = witness;
    this.side = side;
  }

  /** Returns how often the lock was taken. */
  long run(int threads, long ms) throws Exception {
    long end = System.nanoTime() + ms * 1_000_000;
    Callable<Long> visits = () -> {
      long count = 0;
      for (; System.nanoTime() < end; count++) {
        long token = Verbs.lock(lock, -1);
        try {
          tell("in", token);
          tell("out", token);
        } finally {
          lock.unlock();
        }
      }
      return count;
    };
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      List<Callable<Long>> all = new ArrayList<>();
      for (int i = 0; i < threads; i++) all.add(visits);
      long sum = 0;
      for (Future<Long> count : pool.invokeAll(all)) sum += count.get();
      return sum;
    } finally {
      pool.shutdown();
    }
  }

  private void tell(String way, long token) {
    client
        .getScript(StringCodec.INSTANCE)
        .eval(RScript.Mode.READ_WRITE, WITNESS, RScript.ReturnType.LONG,
            List.of(witness), way, side, "" + token);
  }

  private static String read(String resource) {
    try (InputStream file = Hammer.class.getResourceAsStream(resource)) {
      return new String(file.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException error) {
      throw new IllegalStateException(error);
    }
  }
}
