import {
  type AdmissionRequest,
  type AdmissionRule,
  type AdmittedObject,
  concerns,
  deniedBy,
  missingRight,
  refusalOf,
} from '#kinds'
import type { Clock } from '#model'
import type { ObjectStore } from './objects.ts'
import type { Authorizer } from './rbac/index.ts'
import { type Resource, type ServedResources, toStorage, toVersion } from './served.ts'
import { ApiError } from './status.ts'
import type { Admission, ApiObject, StoredObjects, WriteFailure } from './types.ts'
import type { User } from './user.ts'

/** One write, before its object is known. */
export interface Write {
  /** of the request */
  readonly id: string
  /** of the peer */
  readonly address: string
  readonly user: User
  readonly subresource?: string | undefined
  readonly dryRun: boolean
}

/** A write that its caller has a right to: stored, or failed. */
export interface AdmittedWrite extends Pick<Write, 'id' | 'address'>, AdmissionRequest {
  readonly group: string
  readonly resource: string
}

/** A request that was refused for want of a right. */
export interface RefusedCall extends Pick<Write, 'id' | 'address' | 'user'> {
  readonly method: string
  readonly path: string
  readonly message: string
}

/** Hears who writes what. It must not throw. */
export interface WriteObserver {
  /** whose writes it hears of */
  readonly groups: ReadonlySet<string>
  /** The caller is answered after that. @param failure why it is not stored after all; absent: it is, for good */
  wrote(write: AdmittedWrite, failure?: WriteFailure): Promise<void>
  refused(call: RefusedCall): void
  /** A rule refused a write. @param rule its name */
  denied?(rule: string): void
}

export interface AdmissionParts {
  readonly observer?: WriteObserver | undefined
  readonly authorizer: Authorizer
  readonly objects: ObjectStore
  readonly served: ServedResources
  readonly clock: Clock
}

/** Runs admission rules over what callers write. What the server writes by itself is not asked about. */
export class AdmissionRules {
  readonly #rules: readonly AdmissionRule[]
  readonly #parts: AdmissionParts

  constructor(rules: readonly AdmissionRule[], parts: AdmissionParts) {
    this.#rules = rules
    this.#parts = parts
  }

  /** @returns undefined where no rule is about the resource */
  of(resource: Resource, write: Write): Admission | undefined {
    const rules = this.#rules.filter(({ group }) => group === resource.group)
    const { observer } = this.#parts
    const isObserved = observer?.groups.has(resource.group) === true && !write.dryRun
    if (rules.length === 0 && !isObserved) return undefined
    const heard: AdmittedWrite[] = []
    const concerned = (request: AdmissionRequest) => rules.filter((rule) => concerns(rule, resource, request))
    const request = (object: ApiObject | undefined, before: ApiObject | undefined) =>
      this.#request(resource, write, object, before)
    return {
      mutate: (object, before) => {
        let asked = request(object, before)
        const mutating = concerned(asked).filter(({ mutate }) => mutate)
        for (const rule of mutating) asked = { ...asked, object: mutated(resource, rule, asked) }
        // A rule may leave an object as it is; it never takes its identity.
        return mutating.length === 0 || !asked.object ? object : toVersion(resource, asked.object as ApiObject)
      },
      validate: (object, before, stored) => {
        const asked = request(object, before)
        const { id, address } = write
        // What a rule refuses is heard of as well, as a write that failed.
        if (isObserved) heard.push({ ...asked, id, address, group: resource.group, resource: resource.plural })
        for (const rule of concerned(asked)) this.#decide(resource, rule, asked, stored)
      },
      settled: async (failure) => {
        await Promise.all(heard.map((one) => observer?.wrote(one, failure)))
      },
    }
  }

  #request(
    resource: Resource,
    { user, subresource, dryRun }: Omit<Write, 'id' | 'address'>,
    object: ApiObject | undefined,
    before: ApiObject | undefined,
  ): AdmissionRequest {
    const { name = '', namespace } = (object ?? before)?.metadata ?? {}
    return {
      operation: !object ? 'DELETE' : before ? 'UPDATE' : 'CREATE',
      user,
      object: object && toStorage(resource, object),
      before: before && toStorage(resource, before),
      name,
      ...(namespace && { namespace }),
      ...(subresource && { subresource }),
      dryRun,
      nowMs: this.#parts.clock.now(),
    }
  }

  #decide(resource: Resource, rule: AdmissionRule, request: AdmissionRequest, stored: StoredObjects): void {
    const { authorizer, objects, served, observer } = this.#parts
    for (const right of rule.rights?.(request) ?? []) {
      const { purpose: _, ...attempt } = right
      if (!authorizer.decide(request.user, attempt).allowed)
        throw new ApiError('Forbidden', deniedBy(rule, missingRight(request.user, right)), detailsOf(resource, request))
    }
    const found = (rule.reads?.(request) ?? []).map((one): AdmittedObject | undefined =>
      served.get(one) ? objects.get(one, one) : undefined,
    )
    const listed = (rule.lists?.(request) ?? []).map(({ label, ...name }): readonly AdmittedObject[] => {
      const { collection } = served.get(name) ?? {}
      const all = collection === undefined ? [] : stored.list(collection, '')
      return all.filter(({ metadata }) => metadata.labels?.[label.name] === label.value)
    })
    const faults = rule.faults?.(request, found, listed) ?? []
    if (faults.length > 0) observer?.denied?.(rule.name)
    refuse(resource, rule, request, faults)
  }
}

function mutated(resource: Resource, rule: AdmissionRule, request: AdmissionRequest): AdmittedObject | undefined {
  const mutation = rule.mutate?.(request)
  if (!mutation) return request.object
  if ('object' in mutation) return mutation.object
  refuse(resource, rule, request, mutation.faults)
  return request.object
}

function refuse(
  resource: Resource,
  rule: AdmissionRule,
  request: AdmissionRequest,
  faults: ReturnType<NonNullable<AdmissionRule['faults']>>,
): void {
  if (faults.length === 0) return
  const causes = faults.map(({ path, message }) => ({ reason: 'FieldValueInvalid', message, field: path }))
  throw new ApiError('Invalid', deniedBy(rule, refusalOf(faults)), { ...detailsOf(resource, request), causes })
}

const detailsOf = ({ group, plural }: Resource, { name }: AdmissionRequest) => ({
  ...(name ? { name } : {}),
  ...(group ? { group } : {}),
  kind: plural,
})
