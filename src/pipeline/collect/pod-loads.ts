import { type KubeObject, podFacts } from '#kube'
import { isForbidden, type Taker } from './fold.ts'
import { type CountedPod, countedPod, type PodSums } from './pod-sums.ts'
import { text } from './read.ts'

/**
 * What each pod last added to the sums, by its name, so that it can be taken back when the pod changes or goes: some 150 bytes a
 * pod, and nothing else of it.
 */
export class PodLoads implements Taker<KubeObject> {
  readonly #sums: PodSums
  readonly #onMalformed: (text: string) => void
  readonly #namespaces = new Map<string, Map<string, CountedPod>>()
  /** equal texts once: most pods share their node with others */
  readonly #texts = new Map<string, string>()
  /** why pods may not be read */
  error: unknown

  constructor(sums: PodSums, onMalformed: (text: string) => void) {
    this.#sums = sums
    this.#onMalformed = onMalformed
  }

  reset(): void {
    this.#sums.reset()
    this.#namespaces.clear()
    this.#texts.clear()
    this.error = undefined
  }

  changed(gone: KubeObject | undefined, object: KubeObject | undefined): void {
    const pod = object ?? gone
    if (!pod) return
    const name = text(pod.metadata.name)
    const after = object && this.#shared(countedPod(podFacts(object), this.#onMalformed))
    const namespace = after?.namespace ?? text(pod.metadata.namespace)
    const loads = this.#namespaces.get(namespace) ?? new Map<string, CountedPod>()
    const before = loads.get(name)
    if (before && after && isSame(before, after)) return
    this.#sums.changed(before, after)
    if (after) loads.set(name, after)
    else loads.delete(name)
    if (loads.size > 0) this.#namespaces.set(namespace, loads)
    else this.#namespaces.delete(namespace)
  }

  failed(error: unknown): void {
    if (!isForbidden(error)) throw error
    this.reset()
    this.error = error
  }

  #shared(pod: CountedPod): CountedPod {
    return { ...pod, namespace: this.#once(pod.namespace), nodeName: this.#once(pod.nodeName) }
  }

  #once(given: string): string {
    const known = this.#texts.get(given)
    if (known === undefined) this.#texts.set(given, given)
    return known ?? given
  }
}

const isSame = (a: CountedPod, b: CountedPod): boolean =>
  a.nodeName === b.nodeName && a.phase === b.phase && a.nanoCores === b.nanoCores && a.memoryBytes === b.memoryBytes
