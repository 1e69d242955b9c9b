import pLimit from 'p-limit'
import { isKubeError, type KubeError, namespaces } from '#kube'
import { endingWith } from './ending.ts'
import { type ListEnd, type Listing, readList } from './list.ts'
import { pagesOf } from './pages.ts'

/**
 * Lists single namespaces, several at once. One that cannot be read is told of by its name, and the others count; where none can,
 * the read has failed.
 */
export async function readNamespaces<T>(listing: Listing<T>, names: readonly string[]): Promise<readonly ListEnd<T>[]> {
  const { read, signal, take } = listing
  const { end, release } = endingWith(signal)
  const asked = [...new Set(names)]
  let isFull = false
  const readOne = async (namespace: string): Promise<Ended<T>> => {
    if (isFull) return { ends: [] }
    try {
      const ends = await readList({ ...listing, signal: end.signal }, namespace)
      isFull ||= ends.length === 0
      return { ends }
    } catch (error) {
      // It is the kind that is missing, not the namespace.
      if (isKubeError(error, 'not_found')) end.abort(error)
      else take({ type: 'failed', namespace, error })
      return { error }
    }
  }
  const turn = pLimit(Math.max(1, read.namespaces?.parallelism ?? 1))
  take({ type: 'reset' })
  const ended = await Promise.all(asked.map((namespace) => turn(() => readOne(namespace))))
  release()
  const errors = ended.flatMap((one) => ('error' in one ? [one.error] : []))
  const missing = errors.find((error) => isKubeError(error, 'not_found'))
  if (missing) throw missing
  // What may be over in a moment counts more than what was refused: it is tried again sooner.
  if (errors.length > 0 && errors.length === asked.length)
    throw errors.find((error) => !isKubeError(error, 'forbidden')) ?? errors[0]
  return isFull || errors.length > 0 ? [] : ended.flatMap((one) => ('ends' in one ? one.ends : []))
}

type Ended<T> = { readonly ends: readonly ListEnd<T>[] } | { readonly error: unknown }

const NAMESPACES_PER_PAGE = 500

/** Lists the namespaces we are let into, where the list over all is refused. */
export async function readRefused<T>(listing: Listing<T>, refusal: KubeError): Promise<readonly ListEnd<T>[]> {
  const { kube, read } = listing
  const { attempts, isIsolated } = read
  const names: string[] = []
  try {
    const pages = pagesOf(kube, namespaces, { ...listing, attempts, isIsolated, pageSize: NAMESPACES_PER_PAGE })
    for await (const page of pages)
      for (const { name } of page.items) if (read.namespaces?.wants(name)) names.push(name)
  } catch (error) {
    throw isKubeError(error, 'forbidden') ? refusal : error
  }
  if (names.length === 0) throw refusal
  try {
    await readNamespaces(listing, names)
  } catch (error) {
    // Refused everywhere: the first refusal says it in one sentence.
    throw isKubeError(error, 'forbidden') ? refusal : error
  }
  // Namespaces that come later would be missed.
  return []
}
