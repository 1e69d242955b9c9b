import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { freePort } from '../../../platform/runtime/testing/free-port.ts'

const BINARY = 'victoria-metrics'

/** Why the real server cannot be run here; undefined where it can, or where its absence is to fail. */
export function victoriaMissing(): string | undefined {
  const isThere = (process.env.PATH ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, BINARY), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
  return isThere || process.env.CI_REQUIRE_ALL === '1' ? undefined : ` (skipped: no ${BINARY} on the path)`
}

/** A real VictoriaMetrics on a free port and a directory of its own, which can be killed and started again. */
export class VictoriaMetrics implements AsyncDisposable {
  readonly endpoint: string
  #directory: string
  readonly #port: number
  #child: ChildProcess | undefined
  #begunAt = 0

  private constructor(directory: string, port: number) {
    this.#directory = directory
    this.#port = port
    this.endpoint = `http://127.0.0.1:${port}`
  }

  static async start(): Promise<VictoriaMetrics> {
    const server = new VictoriaMetrics(await mkdtemp(join(tmpdir(), 'victoria-')), await freePort())
    await server.start()
    return server
  }

  async start(): Promise<void> {
    // It tells when it began by the second: two runs of one second look like one, which only a test can do.
    while (secondsNow() <= this.#begunAt) await new Promise((resolve) => setTimeout(resolve, 20))
    this.#begunAt = secondsNow()
    const child = spawn(
      BINARY,
      [
        `-storageDataPath=${this.#directory}`,
        `-httpListenAddr=127.0.0.1:${this.#port}`,
        '-retentionPeriod=100y',
        '-memory.allowedBytes=64MB',
        '-loggerLevel=ERROR',
      ],
      { stdio: 'ignore' },
    )
    this.#child = child
    const failed = once(child, 'error').then(([error]) => Promise.reject(error as Error))
    await Promise.race([this.#answers(), failed])
  }

  /** with kill -9: its last seconds are gone */
  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  /** the next start finds nothing */
  async wipe(): Promise<void> {
    await rm(this.#directory, { recursive: true, force: true })
    this.#directory = await mkdtemp(join(tmpdir(), 'victoria-'))
  }

  /** Ends it, and keeps a copy of what it has. */
  async backUp(): Promise<string> {
    await this.kill('SIGTERM')
    const copy = await mkdtemp(join(tmpdir(), 'victoria-copy-'))
    await cp(this.#directory, copy, { recursive: true })
    return copy
  }

  /** the next start has what the copy has */
  async restore(copy: string): Promise<void> {
    await this.kill()
    await rm(this.#directory, { recursive: true, force: true })
    this.#directory = copy
  }

  /** of every series that matches: its labels and times */
  async export(match: string): Promise<{ metric: Record<string, string>; values: number[]; timestamps: number[] }[]> {
    await this.flush()
    const parameters = new URLSearchParams({ 'match[]': match, start: '0' })
    const text = await (await fetch(`${this.endpoint}/api/v1/export?${parameters}`)).text()
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  }

  /**
   * What was imported can be read. A flush alone is not enough: it does not wait for one that goes on in the background,
   * and searches that found nothing before are remembered for up to 10 s. So a series of our own is imported, waited for,
   * and deleted, which makes all such memories void.
   */
  async flush(): Promise<void> {
    const name = `flushed_${randomUUID().replaceAll('-', '')}`
    await this.#post('/api/v1/import/prometheus', `${name} 1 ${Date.now() - 60_000}\n`)
    for (let n = 0; ; n++) {
      await this.#post('/internal/force_flush')
      // Other words each time, or the first answer would be given again.
      const match = new URLSearchParams({ 'match[]': `{__name__="${name}",n!="${n}"}`, start: '0' })
      const found = await this.#post(`/api/v1/export?${match}`)
      if (found !== '') break
    }
    await this.#delete(name)
  }

  deleteAll(): Promise<unknown> {
    return this.#delete('{__name__!=""}')
  }

  #delete(match: string): Promise<unknown> {
    return this.#post(`/api/v1/admin/tsdb/delete_series?${new URLSearchParams({ 'match[]': match })}`)
  }

  async #post(path: string, body?: string): Promise<string> {
    return await (await fetch(this.endpoint + path, { method: 'POST', ...(body !== undefined && { body }) })).text()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await rm(this.#directory, { recursive: true, force: true })
  }

  async #answers(): Promise<void> {
    const until = Date.now() + 20_000
    for (;;) {
      const isUp = await fetch(`${this.endpoint}/health`).then(
        (response) => response.ok,
        () => false,
      )
      if (isUp) return
      if (Date.now() > until) throw new Error('victoria-metrics did not start within 20 s')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

const secondsNow = (): number => Math.floor(Date.now() / 1000)
