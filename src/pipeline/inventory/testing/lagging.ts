import type { KubeClient, Resource, WatchOptions } from '#kube'
import { systemClock } from '#model'

/** What a watch of one kind tells comes late, its list at once. */
export function lagging(kube: KubeClient, plural: string, ms: number): KubeClient {
  async function* watch(resource: Resource, options: WatchOptions & { signal: AbortSignal }) {
    for await (const event of kube.watch(resource, options)) {
      if (event.type !== 'reset' && resource.plural === plural) await systemClock.sleep(ms, options.signal)
      yield event
    }
  }
  return new Proxy(kube, {
    get: (of, field) => {
      const value: unknown = Reflect.get(of, field)
      if (field === 'watch') return watch
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
}
