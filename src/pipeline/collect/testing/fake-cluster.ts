import { type KubeClient, KubeError, type KubeErrorReason, type KubeObject, type Resource } from '#kube'

type Answer = readonly KubeObject[] | KubeError

/** What a cluster holds, by the plural of the resource (`metrics/nodes` for usage), or how it refuses to say. */
export interface FakeCluster {
  readonly objects?: Readonly<Record<string, Answer>>
  readonly ping?: KubeError
  readonly pageSize?: number
  /** called before every page; may wait, or throw */
  readonly onPage?: (plural: string, page: number, signal: AbortSignal | undefined) => Promise<void> | void
}

export const kubeError = (reason: KubeErrorReason, message = `test: ${reason}`) => new KubeError(reason, message)

const nameOf = ({ group, plural }: Pick<Resource, 'group' | 'plural'>) =>
  group === 'metrics.k8s.io' ? `metrics/${plural}` : plural

/** Answers reads from memory, through the JSON projection of each resource. What is not listed is not served. */
export function fakeCluster({ objects = {}, ping, pageSize = 2, onPage }: FakeCluster): KubeClient {
  const read = (resource: Resource<unknown>) => {
    const answer = objects[nameOf(resource)]
    if (answer === undefined) throw kubeError('not_found')
    if (answer instanceof KubeError) throw answer
    return answer
  }
  const project = <T>({ fromJson }: Resource<T>, object: KubeObject): T =>
    fromJson ? fromJson(object) : (object as unknown as T) // a resource without projection gives the object itself
  async function* list<T>(resource: Resource<T>, options: { signal?: AbortSignal } = {}) {
    const all = read(resource)
    for (let page = 0; page * pageSize < Math.max(all.length, 1); page++) {
      await onPage?.(nameOf(resource), page, options.signal)
      options.signal?.throwIfAborted()
      const items = all.slice(page * pageSize, (page + 1) * pageSize).map((object) => project(resource, object))
      yield { items, resourceVersion: '1' }
    }
  }
  const client = {
    endpoint: 'https://api.west.example.com:6443',
    list,
    async listAll<T>(resource: Resource<T>, options?: { signal?: AbortSignal }) {
      const all: T[] = []
      for await (const page of list(resource, options)) all.push(...page.items)
      return all
    },
    async get<T>(resource: Resource<T>, { name }: { name: string }) {
      if (objects[nameOf(resource)] === undefined) return undefined
      const found = read(resource).find(({ metadata }) => metadata.name === name)
      return found && project(resource, found)
    },
    version: async () => ({ gitVersion: 'v1.33.1', platform: 'linux/amd64' }),
    serves: async (resource: Resource) => objects[nameOf(resource)] !== undefined,
    ping: async () => {
      if (ping) throw ping
    },
  }
  return client as unknown as KubeClient // the calls that collectors make; others would fail loudly
}
