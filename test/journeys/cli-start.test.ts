import { describe, expect, it } from 'vitest'
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
    const spentMs: number[] = []
    // The least of three: the first may find cold caches.
    for (let attempt = 0; attempt < 3; attempt++) {
      const run = clusterpulse([...args], { env: { NODE_OPTIONS: `--import=${tellCpu}` } })
      expect(await run.ended()).toBe(status)
      expect(run.stdout() + run.stderr()).toMatch(says)
      spentMs.push(Number(/cpu ([\d.]+) ms/.exec(run.stderr())?.[1]))
    }
    expect(Math.min(...spentMs), `of ${spentMs.join(', ')} ms`).toBeLessThan(300)
  })
})
