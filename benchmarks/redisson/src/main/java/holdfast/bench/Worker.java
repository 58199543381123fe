package holdfast.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** A worker process with Redisson. It speaks the protocol of workers/protocol.ts. */
public final class Worker {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final OperatingSystemMXBean SYSTEM = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
  private static final PrintStream PROTOCOL = System.out;

  public static void main(String[] args) {
    System.setOut(System.err);
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    Thread.setDefaultUncaughtExceptionHandler((thread, error) -> fail(error));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try {
      String first = lines.readLine();
      if (first != null) serve(JSON.readValue(first, Job.class), lines);
      System.exit(0);
    } catch (Exception error) {
      fail(error);
    }
  }

  private static void serve(Job job, BufferedReader lines) throws IOException {
    Config config = new Config();
    config.useSingleServer().setAddress(job.url());
    RedissonClient client = Redisson.create(config);
    Function<String, RLock> locks = switch (job.contender()) {
      case "java-lock" -> client::getLock;
      case "java-fair-lock" -> client::getFairLock;
      default -> throw new IllegalArgumentException("no such contender: " + job.contender());
    };
    say("ready", Map.of());
    // This thread goes on reading, so that a coordinator that went away ends the process at any time.
    for (String line; (line = lines.readLine()) != null; ) {
      Job.Word word = JSON.readValue(line, Job.Word.class);
      switch (word.what()) {
        case "start" -> new Thread(() -> run(job, locks, word), "run").start();
        case "leave" -> {
          client.shutdown(0, 2, TimeUnit.SECONDS);
          return;
        }
        default -> throw new IllegalArgumentException("no such word: " + word.what());
      }
    }
  }

  private static void run(Job job, Function<String, RLock> locks, Job.Word word) {
    try {
      long notice = (long) (word.from() - System.nanoTime() / 1000.0);
      if (notice > 0) TimeUnit.MICROSECONDS.sleep(notice);
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
    long before = SYSTEM.getProcessCpuTime();
    Callers callers = new Callers(job, locks, word);
    try {
      while (!callers.join(200)) say("progress", Map.of("acquired", callers.acquired.sum()));
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
    long cpu = SYSTEM.getProcessCpuTime() - before;
    Map<String, Object> done = new HashMap<>();
    done.put("samples", Samples.encode(callers.samples));
    done.put("commands", null);
    done.put("writes", null);
    done.put("cpu", cpu / 1000.0);
    done.put("timeouts", callers.timeouts.sum());
    done.put("errors", callers.errors.sum());
    done.put("messages", callers.messages);
    say("done", done);
  }

  private static void fail(Throwable error) {
    say("failed", Map.of("why", String.valueOf(error)));
    System.exit(1);
  }

  private static synchronized void say(String what, Map<String, ?> fields) {
    Map<String, Object> report = new HashMap<>(fields);
    report.put("is", what);
    try {
      PROTOCOL.println(JSON.writeValueAsString(report));
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    PROTOCOL.flush();
  }
}
