import { readFile } from 'node:fs/promises'
import { FleetError } from '#model'
import { replaceFile } from '#runtime'

class AgentPortTakenError extends FleetError {
  override readonly name = 'AgentPortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true
}

/**
 * Listens where agents find this hub. One that begins where the port is taken takes a free one; from then on it has the port it had, which its
 * members know, and waits for that.
 * @param file keeps it
 * @param wanted as it is set; another one than before is a new beginning
 * @throws AgentPortTakenError
 */
export async function listenAtKept<T extends { readonly address: { readonly port: number } }>(
  file: string,
  wanted: number,
  { listen, onMoved }: { readonly listen: (port: number) => Promise<T>; readonly onMoved: () => void },
): Promise<T> {
  const kept = await keptPort(file, wanted)
  const server = await listen(kept ?? wanted).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    if (kept !== undefined)
      throw new AgentPortTakenError(
        `port ${kept}, where the agents of this hub find it, is taken by another program: end that one; this is tried again`,
        { cause: error },
      )
    onMoved()
    return listen(0)
  })
  const { port } = server.address
  // On a full disk it is not kept, and agents are served all the same: the next start writes it.
  if (port !== kept) await replaceFile(file, `${JSON.stringify({ wanted, port })}\n`).catch(() => undefined)
  return server
}

async function keptPort(file: string, wanted: number): Promise<number | undefined> {
  try {
    const kept = JSON.parse(await readFile(file, 'utf8')) as { readonly wanted?: unknown; readonly port?: unknown }
    return kept.wanted === wanted && typeof kept.port === 'number' ? kept.port : undefined
  } catch {
    return undefined // none yet, or harmed: what is set counts
  }
}
