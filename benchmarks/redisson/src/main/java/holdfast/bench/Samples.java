package holdfast.bench;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;

/** The acquisitions of one caller, four numbers each. */
final class Samples {
  private static final int FIELDS = 4;
  private double[] numbers = new double[FIELDS * 4096];
  private int length = 0;

  /** Which name; then asked, acquired and release called, in µs of the monotonic clock. */
  void add(int name, double asked, double acquired, double left) {
    if (length == numbers.length) numbers = Arrays.copyOf(numbers, 2 * length);
    numbers[length++] = name;
    numbers[length++] = asked;
    numbers[length++] = acquired;
    numbers[length++] = left;
  }

  /** As the protocol has them: the caller's number goes before each acquisition. */
  static byte[] encode(List<Samples> callers) {
    int acquisitions = callers.stream().mapToInt(own -> own.length / FIELDS).sum();
    ByteBuffer bytes = ByteBuffer.allocate(acquisitions * (1 + FIELDS) * Double.BYTES)
            .order(ByteOrder.LITTLE_ENDIAN);
    for (int caller = 0; caller < callers.size(); caller++) {
      Samples own = callers.get(caller);
      for (int i = 0; i < own.length; i++) {
        if (i % FIELDS == 0) bytes.putDouble(caller);
        bytes.putDouble(own.numbers[i]);
      }
    }
    return bytes.array();
  }
}
