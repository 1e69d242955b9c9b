import { slowness } from '../src/platform/runtime/testing/slowness.ts'

/** Processor time of this process since then, ms: what else the machine does is not counted, and a slow one as the one of the bars. */
export function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000 / slowness
}
