import type { Position, Writing } from '#sinks'
import {
  type Composition,
  changesSince,
  compose,
  compositionText,
  type Given,
  type Snapshot,
  type SnapshotChanges,
} from '../compose.ts'
import type { RowStore } from '../store/index.ts'
import { Binding, type BindingOptions, type BindingSource, type Seed } from './binding.ts'
import type { BindingPlan } from './plan.ts'

/** What the reconciler wants of an inventory. */
export interface InventoryPlan {
  readonly generation: number
  readonly composition: Composition
  readonly bindings: readonly BindingPlan[]
  readonly isSuspended: boolean
}

export interface InventoryRunOptions extends Omit<BindingOptions, 'source'> {
  /** namespace of the inventory; '' for one of the cluster */
  readonly namespace: string
  readonly name: string
  /** greater than that of every earlier start */
  readonly epoch: bigint
  readonly store: RowStore
  /** by the name of the binding, of the status */
  readonly seeds: ReadonlyMap<string, Seed>
}

/** One inventory while this process runs: its latest snapshot, where it stands, and its bindings. */
export class InventoryRun implements BindingSource, AsyncDisposable {
  readonly #options: InventoryRunOptions
  readonly #bindings = new Map<string, Binding>()
  #plan: InventoryPlan | undefined
  #snapshot: Snapshot | undefined
  #wasRead = false
  /** of bindings whose sinks held something later */
  readonly #epochs = new Map<string, bigint>()
  #sequence = 0n
  readonly #ending = new Set<Promise<void>>()
  /** each of use once: a binding that comes back later went on from there */
  readonly #seeds: Map<string, Seed>

  constructor(options: InventoryRunOptions) {
    this.#options = options
    this.#seeds = new Map(options.seeds)
  }

  get generation(): number {
    return this.#plan?.generation ?? 0
  }

  /** Whether every list was read to its end since this process started. */
  get wasRead(): boolean {
    return this.#wasRead
  }

  get bindings(): readonly Binding[] {
    return [...this.#bindings.values()]
  }

  /** Goes by this plan from now on; bindings that are not in it end. */
  follow(plan: InventoryPlan): void {
    const before = this.#plan
    this.#plan = plan
    const textOf = (one: InventoryPlan) => `${one.composition.isDoubtful === true} ${compositionText(one.composition)}`
    if (!before || textOf(before) !== textOf(plan)) this.changed()
    this.#keep(plan.bindings)
    for (const of of plan.bindings) {
      const binding = this.#binding(of)
      binding.follow(of, plan.isSuspended)
      if (before && before.generation !== plan.generation) binding.retry()
    }
  }

  /** Takes away in each sink what was written there. */
  remove(plan: InventoryPlan): void {
    this.#plan = plan
    this.#keep(plan.bindings)
    for (const of of plan.bindings) this.#binding(of).remove(of)
  }

  /** Rows or completeness of its targets may have changed. */
  changed(): void {
    this.#snapshot = undefined
    for (const binding of this.#bindings.values()) binding.changed()
  }

  /** Which rows it takes; undefined: that was never said. */
  get composition(): Composition | undefined {
    return this.#plan?.composition
  }

  /** The rows as they are now, complete or not. */
  latest(): Snapshot | undefined {
    if (!this.#plan) return undefined
    this.#snapshot ??= compose(this.#options.store, this.#plan.composition)
    if (this.#snapshot.isComplete || this.#snapshot.isRead) this.#wasRead = true
    return this.#snapshot
  }

  snapshot(): Snapshot | undefined {
    const latest = this.latest()
    return this.#wasRead ? latest : undefined
  }

  changesSince(snapshot: Snapshot, given: Given): SnapshotChanges | undefined {
    return this.#plan && changesSince(this.#options.store, this.#plan.composition, snapshot, given)
  }

  writing(cluster: string): Writing {
    const { namespace, name } = this.#options
    return { cluster, namespace, inventory: name }
  }

  nextPosition(binding: string): Position {
    this.#sequence += 1n
    return { epoch: this.epochOf(binding), sequence: this.#sequence }
  }

  passed(binding: string, { epoch, sequence }: Position): void {
    const own = this.epochOf(binding)
    if (epoch > own) this.#epochs.set(binding, epoch + 1n)
    else if (epoch === own && sequence > this.#sequence) this.#sequence = sequence
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#keep([])
    await Promise.all(this.#ending)
  }

  epochOf(binding: string): bigint {
    return this.#epochs.get(binding) ?? this.#options.epoch
  }

  #binding(plan: BindingPlan): Binding {
    const known = this.#bindings.get(plan.name)
    if (known) return known
    const binding = new Binding(plan, this.#seeds.get(plan.name), { ...this.#options, source: this })
    this.#seeds.delete(plan.name)
    this.#bindings.set(plan.name, binding)
    // What its rows became before is not known: the sink lacks it until it is seen that it lacks nothing.
    binding.changed()
    return binding
  }

  #keep(plans: readonly BindingPlan[]): void {
    const names = new Set(plans.map(({ name }) => name))
    for (const [name, binding] of this.#bindings) {
      if (names.has(name)) continue
      this.#bindings.delete(name)
      const end = binding[Symbol.asyncDispose]().finally(() => this.#ending.delete(end))
      this.#ending.add(end)
    }
  }
}
