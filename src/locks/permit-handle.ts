import { RENAMED, refuseRenamedMethods } from "../api/renamed.ts";
import type { PermitLease } from "../api/semaphore.ts";
import type { SharedLease } from "../core/lease/shared-lease.ts";
import { inspectAs } from "../util/print.ts";
import { LeaseHandle } from "./lease.ts";
import type { Scope } from "./scope.ts";

/** A handle on permits. Permits fence nothing, so it has no token. */
export class PermitHandle extends LeaseHandle implements PermitLease {
  readonly units: number;

  constructor(shared: SharedLease, scope: Scope | null) {
    super(shared, scope, true);
    this.units = shared.units ?? 1;
  }

  release(): Promise<void> {
    return this.leave();
  }

  override toJSON(): object {
    return { ...super.toJSON(), units: this.units };
  }
}

inspectAs(PermitHandle, "PermitLease");
refuseRenamedMethods(PermitHandle, RENAMED.permits);
