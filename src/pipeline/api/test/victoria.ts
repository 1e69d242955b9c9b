import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { PromQl, PromQlPath } from '#history'
import { freePort } from '../../../platform/runtime/testing/free-port.ts'

const binary = 'victoria-metrics'
export const victoriaPath = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, binary))
  .find((path) => existsSync(path))

/** A VictoriaMetrics of our own on a free port, in a folder that goes with it. */
export class Victoria implements AsyncDisposable, PromQl {
  readonly url: string
  readonly #child: ChildProcess
  readonly #directory: string

  private constructor(url: string, child: ChildProcess, directory: string) {
    this.url = url
    this.#child = child
    this.#directory = directory
  }

  static async start(path: string): Promise<Victoria> {
    const directory = await mkdtemp(join(tmpdir(), 'api-victoria-'))
    const port = await freePort()
    const flags = [`-storageDataPath=${directory}`, `-httpListenAddr=127.0.0.1:${port}`, '-retentionPeriod=100y']
    const child = spawn(path, flags, { stdio: 'ignore' })
    const victoria = new Victoria(`http://127.0.0.1:${port}`, child, directory)
    await victoria.#ready()
    return victoria
  }

  async #ready(): Promise<void> {
    for (;;) {
      if (this.#child.exitCode !== null) throw new Error(`victoria-metrics ended with ${this.#child.exitCode}`)
      const answer = await fetch(`${this.url}/health`).catch((error: unknown) => error)
      if (answer instanceof Response && answer.ok) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  /** Lines of the text format, each with a time in ms; they can be asked for afterwards. */
  async write(lines: readonly string[]): Promise<void> {
    const answer = await fetch(`${this.url}/api/v1/import/prometheus`, { method: 'POST', body: lines.join('\n') })
    if (!answer.ok) throw new Error(await answer.text())
    await fetch(`${this.url}/internal/force_flush`)
  }

  async ask(path: PromQlPath, parameters: Readonly<Record<string, string | readonly string[]>>) {
    const body = new URLSearchParams({ nocache: '1' })
    for (const [name, given] of Object.entries(parameters)) for (const value of [given].flat()) body.append(name, value)
    const answer = await fetch(`${this.url}/api/v1/${path}`, { method: 'POST', body })
    return { status: answer.status, body: (await answer.json()) as unknown }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit')
      this.#child.kill('SIGKILL')
      await ended
    }
    await rm(this.#directory, { recursive: true })
  }
}
