import { keyOf, type StoreEvent, type VersionedStore } from '../store.ts'
import { accountUser, type User } from '../user.ts'
import { type BindingObject, COLLECTIONS, type Subject } from './objects.ts'

/** A binding that applies to somebody, and by which of its subjects. */
export interface Applying {
  readonly binding: BindingObject
  readonly subject: Subject
}

type BySubject = Map<string, Map<string, Applying>>

/**
 * Bindings by whom they are about, kept current with the store: a decision looks at those of one user, however many
 * there are of others. A service account is found by its user name.
 */
export class Bindings {
  /** by namespace; '' is the whole cluster */
  readonly #scopes = new Map<string, BySubject>()

  constructor(store: VersionedStore) {
    for (const collection of [COLLECTIONS.clusterRoleBindings, COLLECTIONS.roleBindings])
      for (const object of store.list(collection)) this.#put(object as BindingObject)
  }

  /** Called with every change as it becomes visible. */
  saw(collection: string, { type, object, previous }: StoreEvent): void {
    if (collection !== COLLECTIONS.roleBindings && collection !== COLLECTIONS.clusterRoleBindings) return
    this.#drop((previous ?? object) as BindingObject)
    if (type !== 'DELETED') this.#put(object as BindingObject)
  }

  /** @param namespace '': bindings of the whole cluster */
  *of(user: User, namespace: string): Iterable<Applying> {
    const scope = this.#scopes.get(namespace)
    if (!scope) return
    const subjects = [`User/${user.name}`, ...new Set(user.groups.map((group) => `Group/${group}`))]
    const seen = new Set<string>()
    for (const subject of subjects)
      for (const [key, applying] of scope.get(subject) ?? []) {
        if (seen.has(key)) continue
        seen.add(key)
        yield applying
      }
  }

  #put(binding: BindingObject): void {
    const { namespace = '' } = binding.metadata
    const scope: BySubject = this.#scopes.get(namespace) ?? new Map()
    this.#scopes.set(namespace, scope)
    for (const subject of binding.subjects ?? []) {
      const id = idOf(subject, namespace)
      if (id === undefined) continue
      const list = scope.get(id) ?? new Map<string, Applying>()
      scope.set(id, list.set(keyOf(binding), { binding, subject }))
    }
  }

  #drop(binding: BindingObject): void {
    const { namespace = '' } = binding.metadata
    const scope = this.#scopes.get(namespace)
    if (!scope) return
    for (const subject of binding.subjects ?? []) {
      const id = idOf(subject, namespace)
      const list = id === undefined ? undefined : scope.get(id)
      if (id === undefined || !list) continue
      list.delete(keyOf(binding))
      if (list.size === 0) scope.delete(id)
    }
    if (scope.size === 0) this.#scopes.delete(namespace)
  }
}

/** undefined: a subject that is nobody, such as a service account without a namespace. */
function idOf({ kind, name, namespace }: Subject, own: string): string | undefined {
  if (kind === 'User') return `User/${name}`
  if (kind === 'Group') return `Group/${name}`
  const home = namespace || own
  return kind === 'ServiceAccount' && home ? `User/${accountUser({ namespace: home, name })}` : undefined
}
