import { serverCommand } from "../../tools/redis/index.ts";
import { isAtLeast, versionOf } from "../../tools/redis/version.ts";

const command = serverCommand();
/** If none is on the PATH, only the main server runs, in a container: a new one. */
const version = command === null ? [Number.POSITIVE_INFINITY] : versionOf(command);

/**
 * Has the server program that the tests launch at least this version, such as "7.0"? Tests of
 * missing features are skipped.
 */
export const serverIs = (least: string): boolean => isAtLeast(version, least);
