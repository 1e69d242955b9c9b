import { seconds } from '#model'
import { printableLine } from './terminal.ts'

/** Between two lines where nobody sees a line change. */
const EVERY_MS = seconds(10)

/** Tells on standard error how far long work is: on a terminal in one line that changes, else now and then. */
export function progress(isWanted: boolean): {
  readonly onProgress: (text: string) => void
  readonly done: () => void
} {
  if (!isWanted) return { onProgress: () => undefined, done: () => undefined }
  const { stderr } = process
  let toldAt = Date.now()
  return {
    onProgress: (text) => {
      const line = printableLine(text)
      if (stderr.isTTY) stderr.write(`\r\u001b[K${line.slice(0, Math.max(20, stderr.columns - 1))}`)
      else if (Date.now() - toldAt >= EVERY_MS) {
        toldAt = Date.now()
        stderr.write(`${line}\n`)
      }
    },
    done: () => void (stderr.isTTY && stderr.write('\r\u001b[K')),
  }
}
