import { isKubeError, type KubeClient, type Resource } from '#kube'
import { type ListEnd, type Listing, type Polling, readList } from './list.ts'
import { readNamespaces, readRefused } from './namespace-lists.ts'
import { patiently } from './pages.ts'
import type { Read } from './types.ts'

/**
 * Makes a read once, and tells how it goes. Never throws: that it failed is told as well.
 *
 *   no namespaces, objects of the cluster   one list
 *   all namespaces, or patterns             one list over everything; what is not wanted is left out page by page
 *   namespaces named exactly                one list per namespace, several at once
 *   one list, and it is forbidden           where the read is about namespaces: those that are wanted, and may be read
 *
 * @returns where its lists ended; [] where they cannot be followed, as something is missing
 */
export async function poll<T>(read: Read<T>, polling: Polling<T>): Promise<readonly ListEnd<T>[]> {
  const { kube, take, signal } = polling
  const nameNow = () => patiently(() => nameOf(read, kube, signal), { ...polling, attempts: read.attempts })
  try {
    let resource = await nameNow()
    if (read.one && (resource || !read.resource)) return await pollOne(read.one, polling)
    for (let isAgain = false; resource; isAgain = true) {
      try {
        return await lists({ ...polling, read, resource })
      } catch (error) {
        if (!read.servedAs || !isKubeError(error, 'not_found')) throw error
        // It went meanwhile, or came back under another name: the cluster is asked anew.
        const now = await nameNow()
        resource = isAgain || isSame(now, resource) ? undefined : now
      }
    }
    take({ type: 'absent' })
  } catch (error) {
    take({ type: 'failed', error })
  }
  return []
}

async function nameOf<T>(read: Read<T>, kube: KubeClient, signal: AbortSignal): Promise<Resource<T> | undefined> {
  if (read.servedAs) return read.servedAs(kube, signal)
  return read.isOptional && read.resource && !(await kube.serves(read.resource, signal)) ? undefined : read.resource
}

const isSame = (a: Resource<unknown> | undefined, b: Resource<unknown>) =>
  a?.plural === b.plural && a.namespaced === b.namespaced

async function pollOne<T>(
  one: NonNullable<Read<T>['one']>,
  { kube, take, signal }: Polling<T>,
): Promise<readonly ListEnd<T>[]> {
  const after = await one(kube, signal)
  take({ type: 'reset' })
  if (after !== undefined) take({ type: 'changed', before: undefined, after })
  return []
}

async function lists<T>(listing: Listing<T>): Promise<readonly ListEnd<T>[]> {
  const { read, resource } = listing
  const { namespaces } = read
  if (!namespaces || !resource.namespaced) return readList(listing)
  if (namespaces.exact) return readNamespaces(listing, namespaces.exact.filter(namespaces.wants))
  try {
    return await readList(listing)
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    return readRefused(listing, error)
  }
}
