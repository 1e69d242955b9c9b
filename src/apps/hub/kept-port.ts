import { readFile } from 'node:fs/promises'
import { FleetError } from '#model'
import { replaceFile } from '#runtime'

class PortTakenError extends FleetError {
  override readonly name = 'PortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true
}

export interface KeptPortOptions<T> {
  readonly listen: (port: number) => Promise<T>
  readonly portOf: (server: T) => number
  /** who knows the port, for people. Absent: nobody is lost where it has to be another one */
  readonly knownTo?: string
  /** It is another one than is set, because that was taken: now, or when it was chosen. */
  readonly onElsewhere: (port: number, since: 'now' | 'before') => void
}

/**
 * Listens where a hub is known to be. One that begins where the port is taken takes a free one; from then on it has the port it had, and where
 * others were told of that it waits for it.
 * @param file keeps it
 * @param wanted as it is set; another one than before is a new beginning
 * @throws PortTakenError
 */
export async function listenAtKept<T>(
  file: string,
  wanted: number,
  { listen, portOf, knownTo, onElsewhere }: KeptPortOptions<T>,
): Promise<T> {
  const kept = await keptPort(file, wanted)
  const server = await unlessTaken(listen(kept ?? wanted), (cause) => {
    if (kept === undefined) return listen(0)
    if (knownTo === undefined) return unlessTaken(kept === wanted ? listen(0) : listen(wanted), () => listen(0))
    throw new PortTakenError(
      `port ${kept}, where ${knownTo} find it, is taken by another program: end that one; this is tried again`,
      { cause },
    )
  })
  const port = portOf(server)
  if (port !== wanted) onElsewhere(port, port === kept ? 'before' : 'now')
  // On a full disk it is not kept, and everybody is served all the same: the next start writes it.
  if (port !== kept) await replaceFile(file, `${JSON.stringify({ wanted, port })}\n`).catch(() => undefined)
  return server
}

const unlessTaken = <T>(listening: Promise<T>, otherwise: (error: unknown) => Promise<T>): Promise<T> =>
  listening.catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return otherwise(error)
  })

const isPort = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 65_536

async function keptPort(file: string, wanted: number): Promise<number | undefined> {
  try {
    const kept = JSON.parse(await readFile(file, 'utf8')) as { readonly wanted?: unknown; readonly port?: unknown }
    return kept.wanted === wanted && isPort(kept.port) ? kept.port : undefined
  } catch {
    return undefined // none yet, or harmed: what is set counts
  }
}
