package holdfast.interop;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * What a side can be asked to do, with a lock by its kind and name. Times are ms; a lease of -1 is
 * the watchdog's.
 */
final class Verbs {
  private final RedissonClient client;

  Verbs(RedissonClient client) {
    this.client = client;
  }

  String run(String kind, String name, String verb, List<String> args) throws Exception {
    RLock lock = kind.equals("redissonFencedLock") ? client.getFencedLock(name) : client.getLock(name);
    return switch (verb) {
      case "now" -> "";
      case "lock" -> "" + lock(lock, number(args, 0));
      case "tryLock" -> "" + tryLock(lock, number(args, 0), number(args, 1));
      case "unlock" -> {
        lock.unlock();
        yield "";
      }
      case "forceUnlock" -> "" + lock.forceUnlock();
      case "isLocked" -> "" + lock.isLocked();
      case "ttl" -> "" + lock.remainTimeToLive();
      case "held" -> "" + lock.isHeldByCurrentThread();
      // As the hash says: getHoldCount() tells a thread of itself only.
      case "counts" -> String.join(",",
                client.<String, String>getMap(name, StringCodec.INSTANCE).readAllValues());
      case "token" -> "" + ((RFencedLock) lock).getToken();
      case "hammer" -> "" + new Hammer(client, lock, args.get(0), args.get(1))
                .run((int) number(args, 2), number(args, 3));
      default -> throw new IllegalArgumentException("no such verb: " + verb);
    };
  }

  /** Waits for ever. Returns the token, 0 for a lock without. */
  static long lock(RLock lock, long lease) {
    // RFencedLock.lockAndGetToken(lease, unit) ignores its lease.
    if (lock instanceof RFencedLock fenced && lease < 0) return fenced.lockAndGetToken();
    lock.lock(lease, TimeUnit.MILLISECONDS);
    return lock instanceof RFencedLock fenced ? fenced.getToken() : 0;
  }

  /** Null: somebody else held it. */
  private static Long tryLock(RLock lock, long wait, long lease) throws InterruptedException {
    if (lock instanceof RFencedLock fenced)
          return fenced.tryLockAndGetToken(wait, lease, TimeUnit.MILLISECONDS);
    return lock.tryLock(wait, lease, TimeUnit.MILLISECONDS) ? 0L : null;
  }

  private static long number(List<String> args, int index) {
    return Long.parseLong(args.get(index));
  }
}
