import { describe, expect, it } from 'vitest'
import { leastOf } from '../../src/platform/runtime/testing/least-of.ts'
import { clusterpulse } from '../process.ts'

// Told by the process itself when it ends: what the machine does besides does not count.
const tellCpu = `data:text/javascript,${encodeURIComponent(
  'process.on("exit",()=>{const{user,system}=process.cpuUsage();console.error("cpu",(user+system)/1000,"ms")})',
)}`

describe('the command line', () => {
  it.each([
    ['get', ['get', 'clusters', '--server', 'http://127.0.0.1:4'], 3, /cannot be reached.*--server/],
    ['its version', ['--version'], 0, /^\d+\.\d+\.\d+/],
    ['its help', ['--help'], 0, /Usage: clusterpulse/],
    ['the Tab key', ['complete', '--', 'get', 'no'], 0, /nodes/],
  ] as const)('starts within 300 ms of CPU: %s', async (_, args, status, says) => {
    // The first may find cold caches, and beside others the same takes more of a processor.
    const spentMs = await leastOf(10, 300, async () => {
      const run = clusterpulse([...args], { env: { NODE_OPTIONS: `--import=${tellCpu}` } })
      expect(await run.ended()).toBe(status)
      expect(run.stdout() + run.stderr()).toMatch(says)
      return Number(/cpu ([\d.]+) ms/.exec(run.stderr())?.[1])
    })
    expect(spentMs).toBeLessThan(300)
  })
})
