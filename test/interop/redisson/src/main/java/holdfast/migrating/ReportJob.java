package holdfast.migrating;

import net.javacrumbs.shedlock.spring.annotation.SchedulerLock;
import org.springframework.scheduling.annotation.Scheduled;

/**
 * A job under ShedLock, as docs/migrating.md shows it. It is compiled, and not run: that takes a
 * Spring application.
 */
public class ReportJob {
  // #region before
  @Scheduled(cron = "0 0 * * * *") // on every instance
  @SchedulerLock(name = "report", lockAtLeastFor = "30m", lockAtMostFor = "50m")
  public void tick() {
    sendReport();
  }
  // #endregion

  private void sendReport() {}
}
