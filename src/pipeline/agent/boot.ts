import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A clock that never jumps. Stamps of the same `bootId` may be compared, also across restarts of the process. */
export interface Monotonic {
  readonly bootId: string
  /** ms since some moment of the past */
  now(): number
}

/** The kernel's monotonic clock; where the boot cannot be told from others, stamps hold within this process only. */
export function systemMonotonic(): Monotonic {
  return { bootId: bootId(), now: () => Number(process.hrtime.bigint() / 1000n) / 1000 }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return randomUUID() // no /proc: this process is its own boot
  }
}
