package holdfast.migrating;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;
import org.redisson.config.Config;

/**
 * The shop of test/recipes/programs/migrating/shop.ts, with Redisson: two workers sell five shirts
 * to eight customers. The arguments are the address of a Redis, the name of the product, and
 * "locked" or "bare".
 */
public final class Shop {
  private final RedissonClient redisson;

  private Shop(RedissonClient redisson) {
    this.redisson = redisson;
  }

  // #region before
  void sell(String product) throws InterruptedException {
    RLock lock = redisson.getLock("lock:" + product);
    if (!lock.tryLock(20, 10, TimeUnit.SECONDS)) throw new IllegalStateException("busy for 20 s");
    try {
      sellOne(product);
    } finally {
      lock.unlock();
    }
  }
  // #endregion

  private void sellOne(String product) throws InterruptedException {
    RBucket<Long> stock = redisson.getBucket("stock:" + product, LongCodec.INSTANCE);
    long left = stock.get();
    Thread.sleep(20);
    if (left > 0) stock.set(left - 1);
    System.out.println(left > 0 ? left - 1 + " left" : "sold out");
  }

  public static void main(String[] args) throws Exception {
    String product = args[1];
    boolean isLocked = args[2].equals("locked");
    List<Shop> workers = List.of(new Shop(connect(args[0])), new Shop(connect(args[0])));
    workers.get(0).redisson.getBucket("stock:" + product, LongCodec.INSTANCE).set(5L);
    ExecutorService customers = Executors.newFixedThreadPool(8);
    List<Future<?>> sales = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      Shop worker = workers.get(i % 2);
      sales.add(
          customers.submit(
              () -> {
                if (isLocked) worker.sell(product);
                else worker.sellOne(product);
                return null;
              }));
    }
    for (Future<?> sale : sales) sale.get();
    customers.shutdown();
    workers.get(0).redisson.getKeys().delete("stock:" + product);
    for (Shop worker : workers) worker.redisson.shutdown();
  }

  private static RedissonClient connect(String address) {
    Config config = new Config();
    config.useSingleServer().setAddress(address).setConnectionMinimumIdleSize(4);
    return Redisson.create(config);
  }
}
