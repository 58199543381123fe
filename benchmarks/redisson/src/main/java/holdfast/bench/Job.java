package holdfast.bench;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;

/** The coordinator's first line. The fields are explained in workers/protocol.ts. */
@JsonIgnoreProperties("library")
record Job(String contender, String url, int worker, int workers, long seed) {
  /** Own names, turns and writers are of scenarios in which only Node's processes take part. */
  @JsonIgnoreProperties({"own", "turns", "writer"})
  record Load(
      String is,
      int tasks,
      String[] names,
      long hold,
      long think,
      Long[] leases,
      @JsonProperty("wait") long patience,
      Integer times) {
    Load {
      if (!"load".equals(is)) throw new IllegalArgumentException("only a load can be run here, not: " + is);
    }
  }

  /** Every line after the first. */
  @JsonIgnoreProperties("compileEarly")
  record Word(@JsonProperty("do") String what, Load load, double from, double until) {}
}
