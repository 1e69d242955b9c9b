import { isKubeError, type KubeClient, type KubeError, type KubeObject, namespaces, type Resource } from '#kube'
import type { CustomError } from '#model'
import type { Collecting, ResourceDescriptor, ResourceTarget } from '../types.ts'
import { endingWith } from './ending.ts'
import { type Patience, pagesOf } from './pages.ts'
import { saidOf } from './part.ts'

/*
 * Which lists are read:
 *
 *   objects of the cluster, all namespaces, patterns   one list over everything; what is not wanted is left out page by page
 *   namespaces named exactly                           one list per namespace, several at once
 *   one list over everything, and it is forbidden      the namespaces, then one list per wanted one, several at once
 *
 * All lists of a collection share one budget of rows, and each asks for one object more than is left of it: so `truncated`
 * is said only where there is an object that was left out. A list that failed takes back what it gave.
 */

export interface ReadOptions extends Patience {
  readonly kube: KubeClient
  readonly source: ResourceDescriptor
  /** which of its targets is read, and as what the cluster serves it */
  readonly target: ResourceTarget
  readonly resource: Resource
  /** rows at most */
  readonly limit: number
  /** for `source.collect`, ms since the Unix epoch */
  readonly now: number
  readonly onProgress?: ((rows: number) => void) | undefined
}

/** A list that was read to its end, from which it can be followed. */
export interface ListEnd {
  readonly namespace?: string
  readonly resourceVersion: string
}

export interface Reading {
  readonly collecting: Collecting
  readonly truncated: boolean
  /** namespaces that could not be read, sorted */
  readonly errors: readonly CustomError[]
  /** [] where the lists cannot be followed: something is missing */
  readonly ends: readonly ListEnd[]
}

const NAMESPACES_PER_PAGE = 500

/**
 * Reads the objects a source wants.
 * @throws KubeError where nothing could be read; the signal's reason where it aborts
 */
export async function readObjects(options: ReadOptions): Promise<Reading> {
  const { source, resource } = options
  if (!resource.namespaced) return readWide(options, everything)
  const { exactNamespaces, wantsAllNamespaces, wantsNamespace } = source
  if (exactNamespaces) {
    const names = new Set(exactNamespaces.filter((name) => wantsNamespace(name)))
    return readNamespaces(options, [...names])
  }
  try {
    const isWanted = ({ metadata }: KubeObject) => wantsNamespace(metadata.namespace ?? '')
    return await readWide(options, wantsAllNamespaces ? everything : isWanted)
  } catch (error) {
    if (!isKubeError(error, 'forbidden')) throw error
    return readAllowed(options, error)
  }
}

const everything = () => true

async function readWide(options: ReadOptions, isWanted: (object: KubeObject) => boolean): Promise<Reading> {
  const { kube, source, target, resource, limit, now, onProgress } = options
  const { batchSize } = source.collection
  const pageSize = isWanted === everything ? Math.min(batchSize, limit + 1) : batchSize
  for (let isAgain = false; ; isAgain = true) {
    const collecting = source.collect(now, target)
    let resourceVersion = ''
    try {
      for await (const page of pagesOf(kube, resource, pagesOptions(options, pageSize))) {
        resourceVersion = page.resourceVersion
        for (const object of page.items) {
          if (!isWanted(object)) continue
          if (collecting.size >= limit) return { collecting, truncated: true, errors: [], ends: [] }
          collecting.add(object)
        }
        onProgress?.(collecting.size)
      }
      return { collecting, truncated: false, errors: [], ends: [{ resourceVersion }] }
    } catch (error) {
      if (!isKubeError(error, 'expired') || isAgain) throw error
    }
  }
}

/** The namespaces we are let into, where the list over all is refused. */
async function readAllowed(options: ReadOptions, refusal: KubeError): Promise<Reading> {
  const { kube, source } = options
  const names: string[] = []
  try {
    for await (const page of pagesOf(kube, namespaces, { ...patienceOf(options), pageSize: NAMESPACES_PER_PAGE })) {
      for (const { name } of page.items) if (source.wantsNamespace(name)) names.push(name)
    }
  } catch (error) {
    throw isKubeError(error, 'forbidden') ? refusal : error
  }
  if (names.length === 0) throw refusal
  try {
    return { ...(await readNamespaces(options, names)), ends: [] }
  } catch (error) {
    // Refused everywhere: the first refusal says it in one sentence.
    throw isKubeError(error, 'forbidden') ? refusal : error
  }
}

async function readNamespaces(options: ReadOptions, names: readonly string[]): Promise<Reading> {
  const { end, release } = endingWith(options.signal)
  const reading = new NamespaceReading({ ...options, signal: end.signal })
  const waiting = [...names]
  const work = async () => {
    try {
      for (let name = waiting.shift(); name !== undefined && !reading.truncated; name = waiting.shift()) {
        await reading.read(name)
      }
    } catch (error) {
      end.abort(error)
      throw error
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.max(1, options.source.collection.parallelism) }, work))
  } finally {
    release()
  }
  return reading.result(names.length)
}

/** Lists of single namespaces that share a budget. */
class NamespaceReading {
  truncated = false
  readonly #options: ReadOptions
  readonly #collecting: Collecting
  readonly #errors: { readonly error: CustomError; readonly cause: unknown }[] = []
  readonly #ends: ListEnd[] = []
  #left: number
  #isAnyRead = false

  constructor(options: ReadOptions) {
    this.#options = options
    this.#collecting = options.source.collect(options.now, options.target)
    this.#left = options.limit
  }

  /** Reads one namespace; that it fails is noted. Throws only where all must end. */
  async read(namespace: string): Promise<void> {
    for (let isAgain = false; ; isAgain = true) {
      const taken: string[] = []
      try {
        await this.#pages(namespace, taken)
        this.#isAnyRead = true
        return
      } catch (error) {
        for (const name of taken) this.#collecting.remove(namespace, name)
        this.#left += taken.length
        if (isKubeError(error, 'expired') && !isAgain) continue
        // It is the kind that is missing, not the namespace.
        if (isKubeError(error, 'not_found')) throw error
        this.#errors.push({ error: { namespace, ...saidOf(error) }, cause: error })
        return
      }
    }
  }

  result(asked: number): Reading {
    const errors = this.#errors.toSorted((a, b) => (a.error.namespace < b.error.namespace ? -1 : 1))
    if (asked > 0 && !this.#isAnyRead) {
      // What may be over in a moment counts more than what was refused: it is tried again sooner.
      const worst = errors.find(({ error }) => error.outcome !== 'forbidden') ?? errors[0]
      if (worst) throw worst.cause
    }
    return {
      collecting: this.#collecting,
      truncated: this.truncated,
      errors: errors.map(({ error }) => error),
      ends: this.truncated || errors.length > 0 ? [] : this.#ends,
    }
  }

  async #pages(namespace: string, taken: string[]): Promise<void> {
    const { kube, resource, source, onProgress } = this.#options
    const pageSize = Math.min(source.collection.batchSize, this.#left + 1)
    let resourceVersion = ''
    for await (const page of pagesOf(kube, resource, { ...pagesOptions(this.#options, pageSize), namespace })) {
      resourceVersion = page.resourceVersion
      for (const object of page.items) {
        if (this.#left === 0) {
          this.truncated = true
          return
        }
        this.#collecting.add(object)
        taken.push(object.metadata.name)
        this.#left--
      }
      onProgress?.(this.#collecting.size)
    }
    this.#ends.push({ namespace, resourceVersion })
  }
}

const patienceOf = ({ signal, clock, random, attempts }: Patience): Patience => ({ signal, clock, random, attempts })

const pagesOptions = (options: ReadOptions, pageSize: number) => ({
  ...patienceOf(options),
  labelSelector: options.source.labelSelector,
  pageSize,
})
