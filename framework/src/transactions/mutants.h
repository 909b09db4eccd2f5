#pragma once

/// Places at which the tests can plant a fault, to prove that they would find it. In the library itself every one of
/// them is `false`; only the tests' own build of these sources defines VARVE_MUTATIONS.
#ifdef VARVE_MUTATIONS
namespace varve::transactions {
bool mutant(const char* name);
}
#define VARVE_MUTANT(name) ::varve::transactions::mutant(name)
#else
#define VARVE_MUTANT(name) false
#endif
