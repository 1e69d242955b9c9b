/**
 * Pretends to be clusters: fills API stores with nodes, pods, deployments, operators and what OpenShift adds, serves them
 * over TLS, and lets them live. For `clusterpulse up --demo`, `clusterpulse simulate`, benches and tests.
 *
 *   Scenario → World (facts) → stages change facts → objects are drawn from facts → API store → listener
 *
 * Everything follows from scenario, seed and clock: the same three give the same objects at the same times. No simulated
 * cluster keeps anything outside the memory of its process.
 */
export { type Fault, FaultProxy, type FaultProxyOptions } from './faults.ts'
export { type SimulatedCluster, SimulatedFleet, type SimulateOptions, simulateFleet } from './fleet.ts'
export { type KubeconfigEntry, kubeconfigOf } from './kubeconfig.ts'
export { Past, type Picture } from './past.ts'
export { Random } from './random.ts'
export { type SimulatedRegistry, type SimulatedRegistryOptions, simulateRegistry } from './registry.ts'
export { demoFaults, type PlainOptions, scenarios } from './scenarios.ts'
export type { ClusterScenario, NodePool, Pace, Scenario } from './types.ts'
export { NotInWorldError } from './world/verbs.ts'
export type { World } from './world/world.ts'
