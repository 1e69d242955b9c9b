import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

/** What a hub of the bench tells of itself. */
export interface Usage {
  readonly cpuMs: number
  /** of each of its processes */
  readonly cpuMsEach: readonly number[]
  readonly rssMb: number
  readonly peakRssMb: number
}

/** A process of the bench that answers one message with one message. */
export class Bencher implements AsyncDisposable {
  readonly #child: ChildProcess

  constructor(script: URL, options: object) {
    const execArgv = script.pathname.endsWith('.ts') ? ['--import', 'tsx'] : []
    this.#child = fork(script, [JSON.stringify(options)], { execArgv })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  async hear<T>(): Promise<T> {
    const [value] = await Promise.race([
      once(this.#child, 'message'),
      once(this.#child, 'exit').then(([code]) => Promise.reject(new Error(`a process of the bench ended: ${code}`))),
    ])
    return value as T
  }

  ask<T>(message: string | object): Promise<T> {
    const answer = this.hear<T>()
    this.#child.send(message)
    return answer
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}

/** CPU time that a process has used, ms. */
export function cpuMsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10 // 100 ticks per second on every Linux that Node runs on
}

/** Processes that this one started and that live: those that share the clusters of a hub. */
function childrenOf(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

function memoryMbOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return (Number(found?.[1] ?? 0) * 1024) / 1e6
}

/** The other end: serves until the parent is gone. `settle` ends when everything acknowledged is where it belongs. */
export function serveBencher(port: number, settle: () => Promise<void>): void {
  const usage = (): Usage => {
    const { user, system } = process.cpuUsage()
    const { maxRSS } = process.resourceUsage()
    const others = childrenOf(process.pid)
    const sum = (of: (pid: number) => number) => others.reduce((total, pid) => total + of(pid), 0)
    const cpuMsEach = [(user + system) / 1000, ...others.map(cpuMsOf)]
    return {
      cpuMs: cpuMsEach.reduce((total, one) => total + one, 0),
      cpuMsEach,
      rssMb: process.memoryUsage.rss() / 1e6 + sum((pid) => memoryMbOf(pid, 'VmRSS')),
      peakRssMb: (maxRSS * 1024) / 1e6 + sum((pid) => memoryMbOf(pid, 'VmHWM')),
    }
  }
  process.on('message', (message) => {
    if (message === 'settle') void settle().then(() => process.send?.(usage()))
    else process.send?.(usage())
  })
  process.on('disconnect', () => process.exit())
  process.send?.({ port })
}
