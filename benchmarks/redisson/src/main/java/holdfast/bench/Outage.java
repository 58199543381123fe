package holdfast.bench;

import java.io.PrintStream;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * What table/trial.ts does as "outage", with Redisson: how long RLock.lock() takes to fail when
 * Redis is gone.
 */
public final class Outage {
  public static void main(String[] args) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err);
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    Config config = new Config();
    config.useSingleServer().setAddress(args[0]);
    RedissonClient client = Redisson.create(config);
    RLock lock = client.getLock("table:redisson");
    lock.lock();
    lock.unlock();
    out.println("ready");
    if (System.in.read() < 0) System.exit(0);
    long began = System.nanoTime();
    try {
      lock.lock();
    } catch (RuntimeException error) {
      out.println((System.nanoTime() - began) / 1e6);
    }
    System.exit(0);
  }
}
