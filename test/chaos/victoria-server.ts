import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'

/** Why tests with VictoriaMetrics cannot run here; undefined where they can. With CI_REQUIRE_ALL=1 they are never skipped. */
export const victoriaMissing: string | undefined =
  spawnSync('victoria-metrics', ['-version']).status === 0 || process.env.CI_REQUIRE_ALL === '1'
    ? undefined
    : 'there is no victoria-metrics on this machine'

export interface TestVictoria extends AsyncDisposable {
  readonly url: string
  /** every sample of the node's requested CPU, as it is stored */
  raw(cluster: string): Promise<readonly { readonly at: number; readonly value: number }[]>
}

/** A real VictoriaMetrics on a free port of 127.0.0.1. */
export async function startVictoria(): Promise<TestVictoria> {
  const directory = await mkdtemp(join(tmpdir(), 'victoria-'))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(
    'victoria-metrics',
    [`-storageDataPath=${directory}`, `-httpListenAddr=127.0.0.1:${port}`, '-retentionPeriod=1y', '-loggerLevel=ERROR'],
    { stdio: 'ignore' },
  )
  const ended = once(child, 'exit')
  const healthy = () =>
    fetch(`${url}/health`).then(
      (answer) => answer.ok,
      () => false,
    )
  while (!(await healthy())) {
    if (child.exitCode !== null) throw new Error(`victoria-metrics ended with ${child.exitCode}`)
    await new Promise((done) => setTimeout(done, 50))
  }
  return {
    url,
    async raw(cluster) {
      await fetch(`${url}/internal/force_flush`)
      const match = `clusterpulse_node_cpu_requested{cluster="${cluster}"}`
      const answer = await fetch(`${url}/api/v1/export?reduce_mem_usage=1&match[]=${encodeURIComponent(match)}`)
      const lines = (await answer.text()).split('\n').filter((line) => line !== '')
      return lines.flatMap((line) => {
        const { timestamps, values } = JSON.parse(line) as { timestamps: number[]; values: number[] }
        return timestamps.map((at, i) => ({ at, value: values[i] ?? Number.NaN }))
      })
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      await rm(directory, { recursive: true, force: true })
    },
  }
}
