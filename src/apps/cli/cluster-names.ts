import { clientOf } from './get.ts'

/** A person waits at the Tab key. */
const PATIENCE_MS = 800

/** Names of clusters as the hub tells them; none where it does not, at once. */
export async function clusterNames(server: string, token: string | undefined): Promise<readonly string[]> {
  try {
    const { items } = await clientOf(server, token).clusters({ limit: 1000 }, AbortSignal.timeout(PATIENCE_MS))
    return items.map(({ name }) => name)
  } catch {
    return [] // nothing is offered, and a Tab key has no place for a message
  }
}
