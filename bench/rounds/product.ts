import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

/** A process of the product, started as a user would, that has said that it is ready. */
export class Product implements AsyncDisposable {
  readonly startedAt = performance.now()
  readonly pid: number
  readonly #child: ChildProcess
  #said = ''

  private constructor(bin: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [bin, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, LOG_LEVEL: 'warn', ...env },
    })
    this.pid = this.#child.pid ?? 0
    for (const output of [this.#child.stdout, this.#child.stderr]) {
      output?.setEncoding('utf8').on('data', (text: string) => {
        this.#said = `${this.#said}${text}`.slice(-8000)
      })
    }
  }

  /** @returns when the output matches, with what matched. @throws Error with the output where the process ends before */
  static async start(
    bin: string,
    args: readonly string[],
    ready: RegExp,
    env: Readonly<Record<string, string>> = {},
  ): Promise<{ product: Product; match: RegExpExecArray }> {
    const product = new Product(bin, args, env)
    const child = product.#child
    for (;;) {
      const match = ready.exec(product.#said)
      if (match) return { product, match }
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new Error(`${args[0]} ended before it was ready:\n${product.#said}`)
      }
      await Promise.race([
        once(child, 'exit'),
        ...[child.stdout, child.stderr].flatMap((one) => (one ? [once(one, 'data')] : [])),
      ])
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 20_000)
    await ended
    clearTimeout(late)
  }
}
