# `make install`: the command, the headers, the libraries, licence and documents, and how others find the library
# (pkg-config, find_package(berlu)); tools/install.sh calls it.
# Both descriptions are relative to where they lie, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

if(BERLU_ENGINE)
    install(TARGETS berlu RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY ${PROJECT_BINARY_DIR}/pages/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
    install(FILES ${PROJECT_BINARY_DIR}/pages/berlu.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME berlu)
    set(zsh_folder site-functions) # where zsh looks, but for Debian's under /usr
    if(CMAKE_INSTALL_PREFIX MATCHES "^/usr/?$" AND EXISTS /etc/debian_version)
        set(zsh_folder vendor-completions)
    endif()
    install(FILES ${PROJECT_BINARY_DIR}/pages/_berlu DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh_folder})
endif()
install(TARGETS berlu_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_BINARY_DIR}/libberlu.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET berlu_cuda)
    install(TARGETS berlu_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/berlu DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
    PATTERN act_cuda.h EXCLUDE)
if(TARGET berlu_cuda)
    install(FILES ${PROJECT_SOURCE_DIR}/include/berlu/act_cuda.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berlu)
endif()

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    ${PROJECT_SOURCE_DIR}/SECURITY.md ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md ${PROJECT_SOURCE_DIR}/CITATION.cff
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(generated ${PROJECT_BINARY_DIR}/generated)
file(RELATIVE_PATH BERLU_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/berlu.pc.in ${generated}/berlu.pc @ONLY)
install(FILES ${generated}/berlu.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET berlu_cuda)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/berlu_cuda.pc.in ${generated}/berlu_cuda.pc @ONLY)
    install(FILES ${generated}/berlu_cuda.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/berlu)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/berluConfig.cmake.in ${generated}/berluConfig.cmake
    INSTALL_DESTINATION ${config_folder} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${generated}/berluConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/berluConfig.cmake ${generated}/berluConfigVersion.cmake DESTINATION ${config_folder})
