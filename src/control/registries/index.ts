/**
 * RegistryConnections made true: each names a container registry, which is probed on its interval.
 *
 *   object, Secret → decide (target) → probeRegistry → RegistryStore → status → again after the interval
 *
 * A change of the object or of its Secret ends the probe that runs and begins the next one at once. A registry that stays
 * away is asked less often, up to every fifth interval. What is deleted leaves no trace, also when nobody looked meanwhile.
 */
export { type RegistriesOptions, registryReconcilers } from './controllers.ts'
