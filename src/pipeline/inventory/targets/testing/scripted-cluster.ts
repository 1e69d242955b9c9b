import type { KubeClient, KubeObject, Resource, WatchEvent, WatchOptions } from '#kube'
import { settle } from '../../../../platform/controller/testing/manual-clock.ts'

type Step =
  | { readonly items: readonly KubeObject[]; readonly version?: string }
  | { readonly error: Error }
  | 'open'
  | { readonly deleted: KubeObject }
  | { readonly changed: KubeObject }

/** One watch that somebody opened: the test says what comes. */
export class Opened {
  readonly namespace: string | undefined
  readonly #steps: Step[] = []
  #wake: () => void = () => undefined
  isClosed = false

  constructor(namespace: string | undefined) {
    this.namespace = namespace
  }

  give(...steps: readonly Step[]): Promise<void> {
    this.#steps.push(...steps)
    this.#wake()
    return settle()
  }

  async *run<T>(
    read: (object: KubeObject) => T,
    options: WatchOptions & { signal: AbortSignal },
  ): AsyncGenerator<WatchEvent<T>> {
    const { signal } = options
    signal.addEventListener('abort', () => this.#wake())
    const beginList = async () => typeof options.pageSize === 'function' && (await options.pageSize())
    await beginList()
    while (!signal.aborted) {
      const step = this.#steps.shift()
      if (step === undefined)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
          if (signal.aborted) resolve()
        })
      else if (step === 'open') options.onOpen?.()
      else if ('error' in step) {
        options.onTrouble?.(step.error)
        await beginList()
      } else if ('deleted' in step) yield { type: 'deleted', object: read(step.deleted) }
      else if ('changed' in step) yield { type: 'modified', object: read(step.changed) }
      else yield { type: 'reset', items: step.items.map(read), resourceVersion: step.version ?? '1' }
    }
    this.isClosed = true
  }
}

/** A cluster whose watches and answers are those of the test. */
export class ScriptedCluster {
  readonly opened: Opened[] = []
  served: { plural: string; namespaced: boolean } | undefined = { plural: 'pods', namespaced: true }
  mayList = true
  onOpened: (one: Opened) => void = () => undefined
  readonly kube = {
    find: async () => this.served,
    watch: (resource: Resource<unknown>, options: WatchOptions & { signal: AbortSignal }) => {
      const one = new Opened(options.namespace)
      this.opened.push(one)
      this.onOpened(one)
      return one.run((object) => (resource.fromJson as (object: KubeObject) => unknown)(object), options)
    },
    request: async () => ({ status: { allowed: this.mayList } }),
  } as unknown as KubeClient

  get last(): Opened {
    return this.opened.at(-1) as Opened
  }
}
