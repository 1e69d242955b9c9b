import type { ApiObject, ApiServer } from '#apiserver'
import { HUB_NAMESPACE } from './object-names.ts'

type Resource = Parameters<ApiServer['objects']['get']>[0]

const configMaps = { group: '', version: 'v1', plural: 'configmaps' }
const KEY = { name: 'clusterpulse-up', namespace: HUB_NAMESPACE }

/**
 * What `up` has made in this folder. It makes each object once: edits of people stay, and what they deleted is not made again.
 * Kept as a ConfigMap beside the objects, so that a backup of them has it.
 */
export class DeclaredOnce {
  readonly #server: ApiServer
  readonly #isAgain: boolean
  readonly #known: Set<string>
  readonly #deleted: string[] = []
  #isChanged = false

  private constructor(server: ApiServer, isAgain: boolean, known: Iterable<string>) {
    this.#server = server
    this.#isAgain = isAgain
    this.#known = new Set(known)
  }

  /** @param isAgain make anew what is gone, such as after objects were lost */
  static open(server: ApiServer, isAgain = false): DeclaredOnce {
    const text = (server.objects.get(configMaps, KEY)?.data as Record<string, string> | undefined)?.declared ?? ''
    return new DeclaredOnce(server, isAgain, text.split('\n').filter(Boolean))
  }

  /** What somebody deleted and stays so, as `ClusterConnection/east`. */
  get deleted(): readonly string[] {
    return this.#deleted
  }

  /** @returns the object as it is; undefined: it was deleted and stays so */
  async make(resource: Resource, object: ApiObject, isAgain = this.#isAgain): Promise<ApiObject | undefined> {
    const { name } = object.metadata
    const id = `${object.kind}/${name}`
    const live = this.#server.objects.get(resource, { name, namespace: HUB_NAMESPACE })
    if (!live && this.#known.has(id) && !isAgain) {
      this.#deleted.push(id)
      return undefined
    }
    const made = live ?? (await this.#server.objects.create(object))
    if (!this.#known.has(id)) {
      this.#known.add(id)
      this.#isChanged = true
    }
    return made
  }

  /** `up` itself took it away: it is made when it is asked for again. */
  forget(kind: string, name: string): void {
    if (this.#known.delete(`${kind}/${name}`)) this.#isChanged = true
  }

  async save(): Promise<void> {
    if (!this.#isChanged) return
    const live = this.#server.objects.get(configMaps, KEY)
    const data = { declared: [...this.#known].sort().join('\n') }
    const fresh = { apiVersion: 'v1', kind: 'ConfigMap', metadata: KEY, data }
    await (live ? this.#server.objects.update({ ...live, data }) : this.#server.objects.create(fresh))
    this.#isChanged = false
  }
}
