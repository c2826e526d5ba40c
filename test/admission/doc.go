// Package admission tests what the API server refuses: the schemas of the kinds, the policies of
// config/policy and the roles of config/rbac, all installed in a real API server.
//
// Nothing of the operator runs here. What a controller makes of an object that was admitted is
// tested beside that controller.
package admission
