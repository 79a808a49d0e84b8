mod decl;
