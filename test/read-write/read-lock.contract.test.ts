import { describeLock } from "../contract/describe-lock.ts";

describeLock("readLock");
