import { createInterface } from 'node:readline'
import type { Ask } from './init.ts'
import { ManifestError } from './manifest-files.ts'

/** Questions on the terminal, on standard error, so that standard output stays what is printed. */
export interface Asker extends AsyncDisposable {
  readonly ask: Ask
  /** ends with Ctrl-C */
  readonly signal: AbortSignal
}

export function asker(
  input: NodeJS.ReadableStream = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Asker {
  const lines = createInterface({ input, output })
  const stop = new AbortController()
  lines.on('SIGINT', () => {
    stop.abort()
    lines.close()
  })
  // Lines that come before their question, as pasted ones do, wait for it here.
  const answers = lines[Symbol.asyncIterator]()
  return {
    signal: stop.signal,
    async ask(question, usual) {
      lines.setPrompt(`${question} [${usual}] `)
      lines.prompt()
      const { value, done } = await answers.next()
      if (done) throw new ManifestError('ended before everything was answered: nothing was written')
      return value.trim() || usual
    },
    async [Symbol.asyncDispose]() {
      lines.close()
    },
  }
}
