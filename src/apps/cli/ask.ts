import { createInterface } from 'node:readline/promises'
import type { Ask } from './init.ts'
import { ManifestError } from './manifest-files.ts'

/** Questions on the terminal, on standard error, so that standard output stays what is printed. */
export interface Asker extends AsyncDisposable {
  readonly ask: Ask
  /** ends with Ctrl-C, and where nobody answers any more */
  readonly signal: AbortSignal
}

export function asker(): Asker {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const stop = new AbortController()
  lines.on('SIGINT', () => stop.abort())
  lines.on('close', () => stop.abort())
  return {
    signal: stop.signal,
    async ask(question, usual) {
      try {
        const answer = await lines.question(`${question} [${usual}] `, { signal: stop.signal })
        return answer.trim() || usual
      } catch (cause) {
        if (!stop.signal.aborted) throw cause
        throw new ManifestError('ended before everything was answered: nothing was written', { cause })
      }
    },
    async [Symbol.asyncDispose]() {
      lines.close()
    },
  }
}
