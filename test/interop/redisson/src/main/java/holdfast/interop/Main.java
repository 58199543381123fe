package holdfast.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A Java service with a real Redisson, told what to do by lines, as test/interop/side.ts describes
 * them. The arguments are the watchdog's timeout in ms, "single" or "cluster", and the addresses.
 */
public final class Main {
  private static final PrintStream REPLIES = System.out;

  public static void main(String[] args) throws IOException {
    System.setOut(System.err);
    RedissonClient client = Redisson.create(config(args));
    Verbs verbs = new Verbs(client);
    Map<String, ExecutorService> threads = new HashMap<>();
    say("ready");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    // A lock belongs to a thread: each name of a thread stands for one that stays.
    for (String line; (line = lines.readLine()) != null; ) {
      List<String> words = Arrays.asList(line.split(" "));
      threads
          .computeIfAbsent(words.get(1), name -> Executors.newSingleThreadExecutor())
          .execute(() -> answer(verbs, words));
    }
    // The process that told us what to do has gone, and perhaps left locks to us: they are to
    // expire as those of a dead service do.
    Runtime.getRuntime().halt(0);
  }

  private static void answer(Verbs verbs, List<String> words) {
    long began = System.nanoTime();
    String outcome;
    try {
      String value = verbs.run(words.get(2), words.get(3), words.get(4), words.subList(5, words.size()));
      outcome = "ok " + value;
    } catch (Exception error) {
      outcome = "error " + error.toString().replace('\n', ' ');
    }
    say(words.get(0) + " " + began + " " + System.nanoTime() + " " + outcome);
  }

  private static Config config(String[] args) {
    Config config = new Config();
    config.setLockWatchdogTimeout(Long.parseLong(args[0]));
    String[] addresses = Arrays.copyOfRange(args, 2, args.length);
    if (args[1].equals("cluster")) {
      config.useClusterServers().addNodeAddress(addresses).setMasterConnectionMinimumIdleSize(4);
    } else {
      config.useSingleServer().setAddress(addresses[0]).setConnectionMinimumIdleSize(4);
    }
    return config;
  }

  private static synchronized void say(String line) {
    REPLIES.println(line);
    REPLIES.flush();
  }
}
