import { clientOf } from './get.ts'

/** A person waits at the Tab key, of a machine that may be busy, for a hub that may be far. One that does not listen is known at once. */
const PATIENCE_MS = 3_000

/** Names of clusters as the hub tells them; none where it does not, at once. */
export async function clusterNames(server: string, token: string | undefined): Promise<readonly string[]> {
  try {
    const { items } = await clientOf(server, token).clusters({ limit: 1000 }, AbortSignal.timeout(PATIENCE_MS))
    return items.map(({ name }) => name)
  } catch {
    return [] // nothing is offered, and a Tab key has no place for a message
  }
}
