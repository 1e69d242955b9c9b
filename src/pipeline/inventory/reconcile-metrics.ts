import { Controller, type ControllerOptions, type Reconciled } from '#controller'
import { isKubeError, type KubeErrorReason } from '#kube'
import type { Metrics } from '#runtime'

/** Seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** What a person has to mend; anything else may be gone when it is tried again. */
const TERMINAL: ReadonlySet<KubeErrorReason> = new Set(['invalid', 'unauthorized', 'tls'])

/** What is counted of the controllers of inventory, those of targets and those of sinks together. */
export class ReconcileMetrics {
  readonly #total
  readonly #errors
  readonly #duration
  readonly #controllers: Controller[] = []

  constructor(metrics: Metrics) {
    this.#total = metrics.counter('kollect_reconcile_total', 'Objects that were looked at', ['controller', 'result'])
    this.#errors = metrics.counter('kollect_reconcile_errors_total', 'Looks at objects that failed, and are repeated', [
      'kind',
      'error_class',
    ])
    this.#duration = metrics.histogram(
      'kollect_reconcile_duration_seconds',
      'How long it takes to look at an object',
      ['controller'],
      BUCKETS,
    )
    metrics.gauge('kollect_workqueue_depth', 'Keys that wait for a worker', ['controller'], (gauge) => {
      for (const { name, load } of this.#controllers) gauge.set({ controller: name }, load.waiting)
    })
  }

  /** A controller that is measured. @param kind of its objects */
  controller(kind: string, options: Omit<ControllerOptions, 'onReconciled'>): Controller {
    const controller = new Controller({ ...options, onReconciled: (went) => this.#count(kind, went) })
    this.#controllers.push(controller)
    return controller
  }

  #count(kind: string, { controller, tookMs, error }: Reconciled): void {
    this.#duration.observe({ controller }, tookMs / 1000)
    this.#total.inc({ controller, result: error === undefined ? 'success' : 'error' })
    if (error !== undefined) this.#errors.inc({ kind, error_class: classOf(error) })
  }
}

function classOf(error: unknown): 'forbidden' | 'terminal' | 'transient' {
  if (!isKubeError(error)) return 'transient'
  if (error.reason === 'forbidden') return 'forbidden'
  return TERMINAL.has(error.reason) ? 'terminal' : 'transient'
}
